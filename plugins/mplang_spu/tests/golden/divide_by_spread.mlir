module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x1xf32>, %arg1: tensor<1xf32>, %arg2: tensor<f32>) -> tensor<4x1xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<1xf32>
    %0 = stablehlo.compare  LT, %arg1, %cst : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %1 = stablehlo.negate %arg1 : tensor<1xf32>
    %2 = stablehlo.select %0, %1, %arg1 : tensor<1xi1>, tensor<1xf32>
    %cst_0 = stablehlo.constant dense<1.600000e+01> : tensor<1xf32>
    %3 = stablehlo.compare  GT, %2, %cst_0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_1 = stablehlo.constant dense<2.560000e+02> : tensor<1xf32>
    %4 = stablehlo.compare  GT, %2, %cst_1 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_2 = stablehlo.constant dense<4.096000e+03> : tensor<1xf32>
    %5 = stablehlo.compare  GT, %2, %cst_2 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_3 = stablehlo.constant dense<6.553600e+04> : tensor<1xf32>
    %6 = stablehlo.compare  GT, %2, %cst_3 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_4 = stablehlo.constant dense<0x49800000> : tensor<1xf32>
    %7 = stablehlo.compare  GT, %2, %cst_4 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_5 = stablehlo.constant dense<0x4B800000> : tensor<1xf32>
    %8 = stablehlo.compare  GT, %2, %cst_5 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_6 = stablehlo.constant dense<0x4D800000> : tensor<1xf32>
    %9 = stablehlo.compare  GT, %2, %cst_6 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_7 = stablehlo.constant dense<4.2949673E+9> : tensor<1xf32>
    %10 = stablehlo.compare  GT, %2, %cst_7 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_8 = stablehlo.constant dense<6.87194767E+10> : tensor<1xf32>
    %11 = stablehlo.compare  GT, %2, %cst_8 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_9 = stablehlo.constant dense<1.09951163E+12> : tensor<1xf32>
    %12 = stablehlo.compare  GT, %2, %cst_9 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
    %cst_11 = stablehlo.constant dense<6.250000e-02> : tensor<1xf32>
    %13 = stablehlo.select %3, %cst_11, %cst_10 : tensor<1xi1>, tensor<1xf32>
    %cst_12 = stablehlo.constant dense<3.906250e-03> : tensor<1xf32>
    %14 = stablehlo.select %4, %cst_12, %13 : tensor<1xi1>, tensor<1xf32>
    %cst_13 = stablehlo.constant dense<2.44140625E-4> : tensor<1xf32>
    %15 = stablehlo.select %5, %cst_13, %14 : tensor<1xi1>, tensor<1xf32>
    %cst_14 = stablehlo.constant dense<1.52587891E-5> : tensor<1xf32>
    %16 = stablehlo.select %6, %cst_14, %15 : tensor<1xi1>, tensor<1xf32>
    %cst_15 = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
    %cst_16 = stablehlo.constant dense<6.250000e-02> : tensor<1xf32>
    %17 = stablehlo.select %7, %cst_16, %cst_15 : tensor<1xi1>, tensor<1xf32>
    %cst_17 = stablehlo.constant dense<3.906250e-03> : tensor<1xf32>
    %18 = stablehlo.select %8, %cst_17, %17 : tensor<1xi1>, tensor<1xf32>
    %cst_18 = stablehlo.constant dense<2.44140625E-4> : tensor<1xf32>
    %19 = stablehlo.select %9, %cst_18, %18 : tensor<1xi1>, tensor<1xf32>
    %cst_19 = stablehlo.constant dense<1.52587891E-5> : tensor<1xf32>
    %20 = stablehlo.select %10, %cst_19, %19 : tensor<1xi1>, tensor<1xf32>
    %cst_20 = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
    %cst_21 = stablehlo.constant dense<6.250000e-02> : tensor<1xf32>
    %21 = stablehlo.select %11, %cst_21, %cst_20 : tensor<1xi1>, tensor<1xf32>
    %cst_22 = stablehlo.constant dense<3.906250e-03> : tensor<1xf32>
    %22 = stablehlo.select %12, %cst_22, %21 : tensor<1xi1>, tensor<1xf32>
    %23 = stablehlo.multiply %2, %16 : tensor<1xf32>
    %24 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %25 = stablehlo.add %23, %24 : tensor<1xf32>
    %26 = stablehlo.multiply %25, %20 : tensor<1xf32>
    %27 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %28 = stablehlo.add %26, %27 : tensor<1xf32>
    %29 = stablehlo.multiply %28, %22 : tensor<1xf32>
    %30 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %31 = stablehlo.add %29, %30 : tensor<1xf32>
    %cst_23 = stablehlo.constant dense<1.000000e+00> : tensor<1xf32>
    %32 = stablehlo.divide %cst_23, %31 : tensor<1xf32>
    %33 = stablehlo.negate %32 : tensor<1xf32>
    %34 = stablehlo.select %0, %33, %32 : tensor<1xi1>, tensor<1xf32>
    %35 = stablehlo.broadcast_in_dim %16, dims = [1] : (tensor<1xf32>) -> tensor<1x1xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %37 = stablehlo.multiply %arg0, %36 : tensor<4x1xf32>
    %38 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %39 = stablehlo.add %37, %38 : tensor<4x1xf32>
    %40 = stablehlo.broadcast_in_dim %20, dims = [1] : (tensor<1xf32>) -> tensor<1x1xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %42 = stablehlo.multiply %39, %41 : tensor<4x1xf32>
    %43 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %44 = stablehlo.add %42, %43 : tensor<4x1xf32>
    %45 = stablehlo.broadcast_in_dim %22, dims = [1] : (tensor<1xf32>) -> tensor<1x1xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %47 = stablehlo.multiply %44, %46 : tensor<4x1xf32>
    %48 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %49 = stablehlo.add %47, %48 : tensor<4x1xf32>
    %50 = stablehlo.broadcast_in_dim %34, dims = [1] : (tensor<1xf32>) -> tensor<1x1xf32>
    %51 = stablehlo.broadcast_in_dim %50, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<4x1xf32>
    %52 = stablehlo.multiply %49, %51 : tensor<4x1xf32>
    return %52 : tensor<4x1xf32>
  }
}
// operand: float32 0.0
