module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xui8>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<2xi1> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<2xui8>
    %1 = stablehlo.convert %0 : (tensor<2xui8>) -> tensor<2xi64>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %3 = stablehlo.and %1, %2 : tensor<2xi64>
    %4 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %5 = stablehlo.add %3, %4 : tensor<2xi64>
    %6 = stablehlo.convert %5 : (tensor<2xi64>) -> tensor<2xui8>
    %c = stablehlo.constant dense<3> : tensor<2xui8>
    %7 = stablehlo.compare  GT, %6, %c,  UNSIGNED : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xi1>
    return %7 : tensor<2xi1>
  }
}
// operand: int64 255
// operand: int64 0
