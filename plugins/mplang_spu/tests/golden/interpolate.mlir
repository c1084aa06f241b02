module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<f32>) -> tensor<4xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<1xf32>) -> tensor<3xf32>
    %2 = stablehlo.reshape %arg1 : (tensor<f32>) -> tensor<1xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<1xf32>) -> tensor<3xf32>
    %4 = stablehlo.subtract %3, %1 : tensor<3xf32>
    %5 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %6 = stablehlo.add %4, %5 : tensor<3xf32>
    %cst = stablehlo.constant dense<[0.000000e+00, 0.333333343, 0.666666686]> : tensor<3xf32>
    %7 = stablehlo.multiply %6, %cst : tensor<3xf32>
    %8 = stablehlo.add %1, %7 : tensor<3xf32>
    %cst_0 = stablehlo.constant dense<[0.000000e+00, -0.333333343, -0.666666686]> : tensor<3xf32>
    %9 = stablehlo.multiply %6, %cst_0 : tensor<3xf32>
    %10 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %11 = stablehlo.add %9, %10 : tensor<3xf32>
    %12 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %13 = stablehlo.multiply %11, %12 : tensor<3xf32>
    %14 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %15 = stablehlo.add %13, %14 : tensor<3xf32>
    %16 = stablehlo.add %8, %15 : tensor<3xf32>
    %17 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %18 = stablehlo.concatenate %16, %17, dim = 0 : (tensor<3xf32>, tensor<1xf32>) -> tensor<4xf32>
    return %18 : tensor<4xf32>
  }
}
// operand: float32 0.0
// operand: float32 2.9802322387695312e-08
