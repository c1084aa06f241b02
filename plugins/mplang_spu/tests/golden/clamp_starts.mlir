module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xi64>) -> tensor<i64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.iota dim = 0 : tensor<3xi64>
    %c_0 = stablehlo.constant dense<-4611686018427387904> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %c_0), (%0 init: %c) across dimensions = [0] : (tensor<3xi64>, tensor<3xi64>, tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<i64>)
     reducer(%arg1: tensor<i64>, %arg3: tensor<i64>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare  GT, %arg1, %arg3,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %c_1 = stablehlo.constant dense<false> : tensor<i1>
      %3 = stablehlo.or %2, %c_1 : tensor<i1>
      %4 = stablehlo.compare  EQ, %arg1, %arg3,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %5 = stablehlo.compare  LT, %arg2, %arg4,  SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %6 = stablehlo.and %4, %5 : tensor<i1>
      %7 = stablehlo.or %3, %6 : tensor<i1>
      %8 = stablehlo.select %3, %arg1, %arg3 : tensor<i1>, tensor<i64>
      %9 = stablehlo.select %7, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %8, %9 : tensor<i64>, tensor<i64>
    }
    return %1#1 : tensor<i64>
  }
}
