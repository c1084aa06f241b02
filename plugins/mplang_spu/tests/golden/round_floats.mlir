module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<f32>) -> tensor<2xf32> {
    %cst = stablehlo.constant dense<7.000000e+00> : tensor<2xf32>
    %0 = stablehlo.divide %arg0, %cst : tensor<2xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.add %0, %1 : tensor<2xf32>
    %3 = stablehlo.floor %2 : tensor<2xf32>
    %4 = stablehlo.convert %3 : (tensor<2xf32>) -> tensor<2xi64>
    %5 = stablehlo.convert %4 : (tensor<2xi64>) -> tensor<2xf32>
    %6 = stablehlo.multiply %5, %cst : tensor<2xf32>
    %7 = stablehlo.subtract %arg0, %6 : tensor<2xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>
    %8 = stablehlo.compare  LT, %cst, %cst_0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %9 = stablehlo.negate %7 : tensor<2xf32>
    %10 = stablehlo.select %8, %9, %7 : tensor<2xi1>, tensor<2xf32>
    %11 = stablehlo.abs %cst : tensor<2xf32>
    %12 = stablehlo.negate %arg1 : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %14 = stablehlo.compare  LT, %10, %13 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %15 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %16 = stablehlo.subtract %11, %15 : tensor<2xf32>
    %17 = stablehlo.compare  GT, %10, %16 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>
    %cst_2 = stablehlo.constant dense<-1.000000e+00> : tensor<2xf32>
    %18 = stablehlo.select %14, %cst_2, %cst_1 : tensor<2xi1>, tensor<2xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    %19 = stablehlo.select %17, %cst_3, %18 : tensor<2xi1>, tensor<2xf32>
    %20 = stablehlo.add %3, %19 : tensor<2xf32>
    return %20 : tensor<2xf32>
  }
}
// operand: float32 3.637978807091713e-12
