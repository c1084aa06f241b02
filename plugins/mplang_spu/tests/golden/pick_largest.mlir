module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<i32> {
    %0 = stablehlo.iota dim = 0 : tensor<3xi32>
    %1 = stablehlo.slice %arg0 [0:2:2] : (tensor<3xf32>) -> tensor<1xf32>
    %2 = stablehlo.slice %arg0 [1:2:2] : (tensor<3xf32>) -> tensor<1xf32>
    %3 = stablehlo.slice %0 [0:2:2] : (tensor<3xi32>) -> tensor<1xi32>
    %4 = stablehlo.slice %0 [1:2:2] : (tensor<3xi32>) -> tensor<1xi32>
    %5 = stablehlo.compare  GT, %2, %1 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %6 = stablehlo.select %5, %2, %1 : tensor<1xi1>, tensor<1xf32>
    %7 = stablehlo.select %5, %4, %3 : tensor<1xi1>, tensor<1xi32>
    %8 = stablehlo.slice %arg0 [2:3] : (tensor<3xf32>) -> tensor<1xf32>
    %9 = stablehlo.concatenate %6, %8, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %10 = stablehlo.slice %0 [2:3] : (tensor<3xi32>) -> tensor<1xi32>
    %11 = stablehlo.concatenate %7, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %12 = stablehlo.slice %9 [0:2:2] : (tensor<2xf32>) -> tensor<1xf32>
    %13 = stablehlo.slice %9 [1:2:2] : (tensor<2xf32>) -> tensor<1xf32>
    %14 = stablehlo.slice %11 [0:2:2] : (tensor<2xi32>) -> tensor<1xi32>
    %15 = stablehlo.slice %11 [1:2:2] : (tensor<2xi32>) -> tensor<1xi32>
    %16 = stablehlo.compare  GT, %13, %12 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
    %17 = stablehlo.select %16, %15, %14 : tensor<1xi1>, tensor<1xi32>
    %18 = stablehlo.reshape %17 : (tensor<1xi32>) -> tensor<i32>
    return %18 : tensor<i32>
  }
}
