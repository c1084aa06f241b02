module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<1xf32> {
    %cst = stablehlo.constant dense<6.553600e+04> : tensor<1xf32>
    %0 = stablehlo.compare  GT, %arg0, %cst : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %2 = stablehlo.add %arg0, %1 : tensor<1xf32>
    %3 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<1xf32>
    %5 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %6 = stablehlo.add %4, %5 : tensor<1xf32>
    %7 = stablehlo.select %0, %6, %arg0 : tensor<1xi1>, tensor<1xf32>
    %8 = stablehlo.sqrt %7 : tensor<1xf32>
    %cst_0 = stablehlo.constant dense<2.560000e+02> : tensor<1xf32>
    %9 = stablehlo.multiply %8, %cst_0 : tensor<1xf32>
    %10 = stablehlo.select %0, %9, %8 : tensor<1xi1>, tensor<1xf32>
    return %10 : tensor<1xf32>
  }
}
// operand: float32 0.0
// operand: float32 1.52587890625e-05
