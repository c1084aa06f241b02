module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.abs %arg0 : tensor<2xf32>
    %1 = stablehlo.negate %0 : tensor<2xf32>
    %2 = stablehlo.exponential %1 : tensor<2xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    %3 = stablehlo.add %2, %cst : tensor<2xf32>
    %4 = stablehlo.convert %3 : (tensor<2xf32>) -> tensor<2xf64>
    %cst_0 = stablehlo.constant dense<2.500000e-01> : tensor<2xf64>
    %5 = stablehlo.multiply %4, %cst_0 : tensor<2xf64>
    %6 = stablehlo.multiply %5, %5 : tensor<2xf64>
    %cst_1 = stablehlo.constant dense<-77.444318826450924> : tensor<2xf64>
    %7 = stablehlo.multiply %5, %cst_1 : tensor<2xf64>
    %cst_2 = stablehlo.constant dense<14.036301653784781> : tensor<2xf64>
    %8 = stablehlo.add %7, %cst_2 : tensor<2xf64>
    %cst_3 = stablehlo.constant dense<-280.10173276408284> : tensor<2xf64>
    %9 = stablehlo.multiply %5, %cst_3 : tensor<2xf64>
    %cst_4 = stablehlo.constant dense<210.01948807377858> : tensor<2xf64>
    %10 = stablehlo.add %9, %cst_4 : tensor<2xf64>
    %cst_5 = stablehlo.constant dense<147.08932017970301> : tensor<2xf64>
    %11 = stablehlo.multiply %6, %cst_5 : tensor<2xf64>
    %12 = stablehlo.add %10, %11 : tensor<2xf64>
    %13 = stablehlo.multiply %6, %12 : tensor<2xf64>
    %14 = stablehlo.add %8, %13 : tensor<2xf64>
    %15 = stablehlo.multiply %5, %14 : tensor<2xf64>
    %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<2xf64>
    %16 = stablehlo.subtract %cst_6, %15 : tensor<2xf64>
    %17 = stablehlo.multiply %14, %16 : tensor<2xf64>
    %18 = stablehlo.multiply %5, %17 : tensor<2xf64>
    %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<2xf64>
    %19 = stablehlo.subtract %cst_7, %18 : tensor<2xf64>
    %20 = stablehlo.multiply %17, %19 : tensor<2xf64>
    %cst_8 = stablehlo.constant dense<2.500000e-01> : tensor<2xf64>
    %21 = stablehlo.multiply %20, %cst_8 : tensor<2xf64>
    %22 = stablehlo.convert %21 : (tensor<2xf64>) -> tensor<2xf32>
    %23 = stablehlo.multiply %arg0, %22 : tensor<2xf32>
    return %23 : tensor<2xf32>
  }
}
