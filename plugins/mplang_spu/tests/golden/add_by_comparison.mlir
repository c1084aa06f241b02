module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<2xi32>, %arg2: tensor<i32>) -> tensor<2xf32> {
    %c = stablehlo.constant dense<0> : tensor<2xi32>
    %0 = stablehlo.compare  LT, %arg1, %c,  SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_0 = stablehlo.constant dense<2> : tensor<2xi32>
    %1 = stablehlo.add %arg1, %c_0 : tensor<2xi32>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<2xi1>, tensor<2xi32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<2xf32>
    %4 = stablehlo.iota dim = 1 : tensor<2x2xi64>
    %5 = stablehlo.reshape %3 : (tensor<2x1xi32>) -> tensor<2xi32>
    %6 = stablehlo.convert %5 : (tensor<2xi32>) -> tensor<2xi64>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<2xi64>) -> tensor<2x2xi64>
    %8 = stablehlo.compare  EQ, %7, %4 : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi1>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [0] : (tensor<2xf32>) -> tensor<2x2xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<2x2xf32>
    %10 = stablehlo.select %8, %9, %cst_1 : tensor<2x2xi1>, tensor<2x2xf32>
    %11 = stablehlo.reshape %arg2 : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.pad %11, %arg2, low = [1], high = [0], interior = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
    %13 = stablehlo.convert %12 : (tensor<2xi32>) -> tensor<2xf32>
    %14 = stablehlo.reshape %13 : (tensor<2xf32>) -> tensor<1x2xf32>
    %15 = stablehlo.dot_general %14, %10, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x2xf32>) -> tensor<2xf32>
    %17 = stablehlo.add %arg0, %16 : tensor<2xf32>
    return %17 : tensor<2xf32>
  }
}
// operand: int32 1
