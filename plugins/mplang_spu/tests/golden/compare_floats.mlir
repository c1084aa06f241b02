module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<f32>) -> tensor<3xi1> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %15 = stablehlo.compare  LT, %arg2, %arg3,  TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %15 : tensor<i1>
    }) : (tensor<3xf32>) -> tensor<3xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %1 = stablehlo.clamp %cst_0, %cst_1, %cst_3 : tensor<f32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %2 = stablehlo.clamp %cst_0, %cst_2, %cst_4 : tensor<f32>
    %3 = stablehlo.convert %1 : (tensor<f32>) -> tensor<i32>
    %4 = stablehlo.convert %2 : (tensor<f32>) -> tensor<i32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %6 = "stablehlo.gather"(%0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1>}> : (tensor<3xf32>, tensor<1xi32>) -> tensor<f32>
    %7 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %8 = "stablehlo.gather"(%0, %7) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1>}> : (tensor<3xf32>, tensor<1xi32>) -> tensor<f32>
    %9 = stablehlo.add %6, %8 : tensor<f32>
    %10 = stablehlo.multiply %9, %cst : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %12 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %13 = stablehlo.add %arg0, %12 : tensor<3xf32>
    %14 = stablehlo.compare  GE, %13, %11 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    return %14 : tensor<3xi1>
  }
}
// operand: float32 3.637978807091713e-12
