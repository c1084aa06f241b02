module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<1xi32>, %arg1: tensor<1xi32>, %arg2: tensor<f32>, %arg3: tensor<f32>) -> tensor<1xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<1xi32>) -> tensor<1xi64>
    %1 = stablehlo.convert %arg1 : (tensor<1xi32>) -> tensor<1xi64>
    %c = stablehlo.constant dense<0> : tensor<1xi64>
    %2 = stablehlo.compare  LT, %0, %c : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
    %c_0 = stablehlo.constant dense<0> : tensor<1xi64>
    %3 = stablehlo.compare  LT, %1, %c_0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
    %4 = stablehlo.abs %0 : tensor<1xi64>
    %5 = stablehlo.abs %1 : tensor<1xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<1xi64>
    %6 = stablehlo.convert %5 : (tensor<1xi64>) -> tensor<1xf32>
    %7 = stablehlo.convert %4 : (tensor<1xi64>) -> tensor<1xf32>
    %8 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %9 = stablehlo.add %7, %8 : tensor<1xf32>
    %10 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<1xf32>
    %12 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %13 = stablehlo.add %11, %12 : tensor<1xf32>
    %14 = stablehlo.divide %13, %6 : tensor<1xf32>
    %15 = stablehlo.convert %14 : (tensor<1xf32>) -> tensor<1xi64>
    %c_2 = stablehlo.constant dense<64> : tensor<1xi64>
    %16 = stablehlo.multiply %15, %c_2 : tensor<1xi64>
    %17 = stablehlo.add %c_1, %16 : tensor<1xi64>
    %18 = stablehlo.multiply %16, %5 : tensor<1xi64>
    %19 = stablehlo.subtract %4, %18 : tensor<1xi64>
    %20 = stablehlo.convert %19 : (tensor<1xi64>) -> tensor<1xf32>
    %21 = stablehlo.divide %20, %6 : tensor<1xf32>
    %22 = stablehlo.convert %21 : (tensor<1xf32>) -> tensor<1xi64>
    %c_3 = stablehlo.constant dense<1> : tensor<1xi64>
    %23 = stablehlo.multiply %22, %c_3 : tensor<1xi64>
    %24 = stablehlo.add %17, %23 : tensor<1xi64>
    %25 = stablehlo.multiply %23, %5 : tensor<1xi64>
    %26 = stablehlo.subtract %19, %25 : tensor<1xi64>
    %c_4 = stablehlo.constant dense<0> : tensor<1xi64>
    %27 = stablehlo.compare  LT, %26, %c_4 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
    %28 = stablehlo.compare  GE, %26, %5 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
    %c_5 = stablehlo.constant dense<0> : tensor<1xi64>
    %c_6 = stablehlo.constant dense<-1> : tensor<1xi64>
    %29 = stablehlo.select %27, %c_6, %c_5 : tensor<1xi1>, tensor<1xi64>
    %c_7 = stablehlo.constant dense<1> : tensor<1xi64>
    %30 = stablehlo.select %28, %c_7, %29 : tensor<1xi1>, tensor<1xi64>
    %31 = stablehlo.add %24, %30 : tensor<1xi64>
    %32 = stablehlo.xor %2, %3 : tensor<1xi1>
    %33 = stablehlo.negate %31 : tensor<1xi64>
    %34 = stablehlo.select %32, %33, %31 : tensor<1xi1>, tensor<1xi64>
    %35 = stablehlo.convert %34 : (tensor<1xi64>) -> tensor<1xi32>
    return %35 : tensor<1xi32>
  }
}
// operand: float32 0.0
// operand: float32 0.015625
