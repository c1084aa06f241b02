module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1xf32>, %arg1: tensor<1xf32>, %arg2: tensor<f32>, %arg3: tensor<f32>) -> tensor<1xf32> {
    %0 = stablehlo.abs %arg1 : tensor<1xf32>
    %cst = stablehlo.constant dense<6.553600e+04> : tensor<1xf32>
    %1 = stablehlo.compare  GT, %0, %cst : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %3 = stablehlo.add %arg0, %2 : tensor<1xf32>
    %4 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %5 = stablehlo.multiply %3, %4 : tensor<1xf32>
    %6 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %7 = stablehlo.add %5, %6 : tensor<1xf32>
    %8 = stablehlo.select %1, %7, %arg0 : tensor<1xi1>, tensor<1xf32>
    %9 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %10 = stablehlo.add %arg1, %9 : tensor<1xf32>
    %11 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<1xf32>
    %13 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %14 = stablehlo.add %12, %13 : tensor<1xf32>
    %15 = stablehlo.select %1, %14, %arg1 : tensor<1xi1>, tensor<1xf32>
    %16 = stablehlo.divide %8, %15 : tensor<1xf32>
    return %16 : tensor<1xf32>
  }
}
// operand: float32 0.0
// operand: float32 1.52587890625e-05
