module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>
    %0 = stablehlo.compare  LT, %arg0, %cst : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %1 = stablehlo.negate %arg0 : tensor<2xf32>
    %2 = stablehlo.select %0, %1, %arg0 : tensor<2xi1>, tensor<2xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>
    %cst_1 = stablehlo.constant dense<9.000000e+00> : tensor<2xf32>
    %3 = stablehlo.clamp %cst_0, %2, %cst_1 : tensor<2xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<2xf32>
    %4 = stablehlo.multiply %3, %cst_2 : tensor<2xf32>
    %5 = stablehlo.exponential %4 : tensor<2xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    %6 = stablehlo.subtract %5, %cst_3 : tensor<2xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    %7 = stablehlo.add %5, %cst_4 : tensor<2xf32>
    %8 = stablehlo.divide %6, %7 : tensor<2xf32>
    %9 = stablehlo.negate %8 : tensor<2xf32>
    %10 = stablehlo.select %0, %9, %8 : tensor<2xi1>, tensor<2xf32>
    return %10 : tensor<2xf32>
  }
}
