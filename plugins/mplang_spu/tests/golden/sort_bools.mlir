module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xi1>, %arg1: tensor<ui32>) -> tensor<2xi1> {
    %0 = stablehlo.convert %arg0 : (tensor<2xi1>) -> tensor<2xui32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<2xui32>
    %2 = stablehlo.add %0, %1 : tensor<2xui32>
    %3 = "stablehlo.sort"(%2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<ui32>, %arg3: tensor<ui32>):
      %5 = stablehlo.compare  LT, %arg2, %arg3,  UNSIGNED : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }) : (tensor<2xui32>) -> tensor<2xui32>
    %4 = stablehlo.convert %3 : (tensor<2xui32>) -> tensor<2xi1>
    return %4 : tensor<2xi1>
  }
}
// operand: uint32 0
