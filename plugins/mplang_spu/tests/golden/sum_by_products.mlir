module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<i32>) -> tensor<2xf32> {
    %0 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.pad %0, %arg1, low = [2], high = [0], interior = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.convert %1 : (tensor<3xi32>) -> tensor<3xf32>
    %3 = stablehlo.reshape %2 : (tensor<3xf32>) -> tensor<3x1xf32>
    %4 = stablehlo.dot_general %arg0, %3, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x1xf32>) -> tensor<2x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<2x1xf32>) -> tensor<2xf32>
    return %5 : tensor<2xf32>
  }
}
// operand: int32 1
