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
    %6 = stablehlo.convert %4 : (tensor<1xi64>) -> tensor<1xf32>
    %7 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %8 = stablehlo.add %6, %7 : tensor<1xf32>
    %9 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %10 = stablehlo.multiply %8, %9 : tensor<1xf32>
    %11 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %12 = stablehlo.add %10, %11 : tensor<1xf32>
    %13 = stablehlo.convert %5 : (tensor<1xi64>) -> tensor<1xf32>
    %14 = stablehlo.divide %12, %13 : tensor<1xf32>
    %15 = stablehlo.convert %14 : (tensor<1xf32>) -> tensor<1xi64>
    %c_2 = stablehlo.constant dense<64> : tensor<1xi64>
    %16 = stablehlo.multiply %15, %c_2 : tensor<1xi64>
    %17 = stablehlo.add %c_1, %16 : tensor<1xi64>
    %18 = stablehlo.multiply %16, %5 : tensor<1xi64>
    %19 = stablehlo.subtract %4, %18 : tensor<1xi64>
    %20 = stablehlo.convert %19 : (tensor<1xi64>) -> tensor<1xf32>
    %21 = stablehlo.convert %5 : (tensor<1xi64>) -> tensor<1xf32>
    %cst = stablehlo.constant dense<0x4C000000> : tensor<1xf32>
    %22 = stablehlo.compare  GT, %20, %cst : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %23 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %24 = stablehlo.add %20, %23 : tensor<1xf32>
    %25 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %26 = stablehlo.multiply %24, %25 : tensor<1xf32>
    %27 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %28 = stablehlo.add %26, %27 : tensor<1xf32>
    %29 = stablehlo.select %22, %28, %20 : tensor<1xi1>, tensor<1xf32>
    %30 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %31 = stablehlo.add %21, %30 : tensor<1xf32>
    %32 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %33 = stablehlo.multiply %31, %32 : tensor<1xf32>
    %34 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %35 = stablehlo.add %33, %34 : tensor<1xf32>
    %36 = stablehlo.select %22, %35, %21 : tensor<1xi1>, tensor<1xf32>
    %37 = stablehlo.divide %29, %36 : tensor<1xf32>
    %38 = stablehlo.convert %37 : (tensor<1xf32>) -> tensor<1xi64>
    %c_3 = stablehlo.constant dense<1> : tensor<1xi64>
    %39 = stablehlo.multiply %38, %c_3 : tensor<1xi64>
    %40 = stablehlo.add %17, %39 : tensor<1xi64>
    %41 = stablehlo.multiply %39, %5 : tensor<1xi64>
    %42 = stablehlo.subtract %19, %41 : tensor<1xi64>
    %c_4 = stablehlo.constant dense<0> : tensor<1xi64>
    %43 = stablehlo.compare  LT, %42, %c_4 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
    %44 = stablehlo.compare  GE, %42, %5 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
    %c_5 = stablehlo.constant dense<0> : tensor<1xi64>
    %c_6 = stablehlo.constant dense<-1> : tensor<1xi64>
    %45 = stablehlo.select %43, %c_6, %c_5 : tensor<1xi1>, tensor<1xi64>
    %c_7 = stablehlo.constant dense<1> : tensor<1xi64>
    %46 = stablehlo.select %44, %c_7, %45 : tensor<1xi1>, tensor<1xi64>
    %47 = stablehlo.add %40, %46 : tensor<1xi64>
    %48 = stablehlo.xor %2, %3 : tensor<1xi1>
    %49 = stablehlo.negate %47 : tensor<1xi64>
    %50 = stablehlo.select %48, %49, %47 : tensor<1xi1>, tensor<1xi64>
    %51 = stablehlo.convert %50 : (tensor<1xi64>) -> tensor<1xi32>
    %c_8 = stablehlo.constant dense<0> : tensor<1xi32>
    %52 = stablehlo.compare  EQ, %arg1, %c_8 : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %c_9 = stablehlo.constant dense<-1> : tensor<1xi32>
    %53 = stablehlo.select %52, %c_9, %51 : tensor<1xi1>, tensor<1xi32>
    return %53 : tensor<1xi32>
  }
}
// operand: float32 0.0
// operand: float32 0.015625
