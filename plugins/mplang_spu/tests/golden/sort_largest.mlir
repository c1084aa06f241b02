module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
    %0 = stablehlo.iota dim = 0 : tensor<3xi32>
    %1 = stablehlo.reverse %arg0, dims = [0] : tensor<3xf32>
    %2 = stablehlo.reverse %0, dims = [0] : tensor<3xi32>
    %3:2 = "stablehlo.sort"(%1, %2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<i32>):
      %8 = stablehlo.compare  LT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    }) : (tensor<3xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>)
    %4 = stablehlo.slice %3#0 [1:3] : (tensor<3xf32>) -> tensor<2xf32>
    %5 = stablehlo.slice %3#1 [1:3] : (tensor<3xi32>) -> tensor<2xi32>
    %6 = stablehlo.reverse %4, dims = [0] : tensor<2xf32>
    %7 = stablehlo.reverse %5, dims = [0] : tensor<2xi32>
    return %6, %7 : tensor<2xf32>, tensor<2xi32>
  }
}
