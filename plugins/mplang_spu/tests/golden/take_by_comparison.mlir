module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<3xi32>, %arg2: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<3xi32>
    %0 = stablehlo.compare  LT, %arg1, %c,  SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_0 = stablehlo.constant dense<2> : tensor<3xi32>
    %1 = stablehlo.add %arg1, %c_0 : tensor<3xi32>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<3xi1>, tensor<3xi32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %4 = stablehlo.reshape %3 : (tensor<3x1xi32>) -> tensor<3xi32>
    %5 = stablehlo.convert %4 : (tensor<3xi32>) -> tensor<3xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<3xi64>
    %c_2 = stablehlo.constant dense<1> : tensor<3xi64>
    %6 = stablehlo.clamp %c_1, %5, %c_2 : tensor<3xi64>
    %7 = stablehlo.iota dim = 0 : tensor<2x3xi64>
    %8 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<3xi64>) -> tensor<2x3xi64>
    %9 = stablehlo.compare  EQ, %8, %7 : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<2x3xi1>) -> tensor<2x3x1xi1>
    %11 = stablehlo.reshape %arg0 : (tensor<2xf32>) -> tensor<2x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 2] : (tensor<2x1xf32>) -> tensor<2x3x1xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x3x1xf32>
    %13 = stablehlo.select %10, %12, %cst : tensor<2x3x1xi1>, tensor<2x3x1xf32>
    %14 = stablehlo.reshape %arg2 : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.pad %14, %arg2, low = [1], high = [0], interior = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
    %16 = stablehlo.convert %15 : (tensor<2xi32>) -> tensor<2xf32>
    %17 = stablehlo.reshape %16 : (tensor<2xf32>) -> tensor<1x2xf32>
    %18 = stablehlo.reshape %13 : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
    %19 = stablehlo.dot_general %17, %18, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x3xf32>) -> tensor<1x3xf32>
    %20 = stablehlo.reshape %19 : (tensor<1x3xf32>) -> tensor<3x1xf32>
    %21 = stablehlo.reshape %20 : (tensor<3x1xf32>) -> tensor<3xf32>
    return %21 : tensor<3xf32>
  }
}
// operand: int32 1
