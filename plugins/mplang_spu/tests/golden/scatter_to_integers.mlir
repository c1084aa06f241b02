module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xi1>, %arg1: tensor<2xi32>, %arg2: tensor<i64>) -> tensor<2xi1> {
    %c = stablehlo.constant dense<0> : tensor<2xi32>
    %0 = stablehlo.compare  LT, %arg1, %c,  SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_0 = stablehlo.constant dense<2> : tensor<2xi32>
    %1 = stablehlo.add %arg1, %c_0 : tensor<2xi32>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<2xi1>, tensor<2xi32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %c_1 = stablehlo.constant dense<true> : tensor<2xi1>
    %4 = stablehlo.convert %arg0 : (tensor<2xi1>) -> tensor<2xi64>
    %5 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %6 = stablehlo.add %4, %5 : tensor<2xi64>
    %7 = stablehlo.convert %c_1 : (tensor<2xi1>) -> tensor<2xi64>
    %8 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %9 = stablehlo.add %7, %8 : tensor<2xi64>
    %10 = "stablehlo.scatter"(%6, %3, %9) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<i64>, %arg4: tensor<i64>):
      stablehlo.return %arg4 : tensor<i64>
    }) : (tensor<2xi64>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2xi64>
    %11 = stablehlo.convert %10 : (tensor<2xi64>) -> tensor<2xi1>
    return %11 : tensor<2xi1>
  }
}
// operand: int64 0
