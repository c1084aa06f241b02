module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xi1>, %arg1: tensor<2xi1>) -> tensor<i1> {
    %0 = stablehlo.convert %arg0 : (tensor<2xi1>) -> tensor<2xi64>
    %1 = stablehlo.convert %arg1 : (tensor<2xi1>) -> tensor<2xi64>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [0] x [0] : (tensor<2xi64>, tensor<2xi64>) -> tensor<i64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %3 = stablehlo.compare  GT, %2, %c : (tensor<i64>, tensor<i64>) -> tensor<i1>
    return %3 : tensor<i1>
  }
}
