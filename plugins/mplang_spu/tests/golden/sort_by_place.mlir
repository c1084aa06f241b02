module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xi32> {
    %0 = stablehlo.iota dim = 0 : tensor<2xi32>
    %1:3 = "stablehlo.sort"(%arg0, %arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<i32>, %arg6: tensor<i32>):
      %2 = stablehlo.compare  LT, %arg3, %arg4,  TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare  EQ, %arg3, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.compare  LT, %arg5, %arg6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %5 = stablehlo.and %3, %4 : tensor<i1>
      %6 = stablehlo.or %2, %5 : tensor<i1>
      %7 = stablehlo.compare  LT, %arg1, %arg2,  TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.compare  EQ, %arg1, %arg2,  TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %9 = stablehlo.and %8, %6 : tensor<i1>
      %10 = stablehlo.or %7, %9 : tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>)
    return %1#2 : tensor<2xi32>
  }
}
