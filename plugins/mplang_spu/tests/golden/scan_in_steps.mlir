module @main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5xf32>) -> tensor<5xf32> {
    %0 = stablehlo.slice %arg0 [0:4] : (tensor<5xf32>) -> tensor<4xf32>
    %1 = stablehlo.slice %arg0 [1:5] : (tensor<5xf32>) -> tensor<4xf32>
    %2 = stablehlo.maximum %0, %1 : tensor<4xf32>
    %3 = stablehlo.slice %arg0 [0:1] : (tensor<5xf32>) -> tensor<1xf32>
    %4 = stablehlo.concatenate %3, %2, dim = 0 : (tensor<1xf32>, tensor<4xf32>) -> tensor<5xf32>
    %5 = stablehlo.slice %4 [0:3] : (tensor<5xf32>) -> tensor<3xf32>
    %6 = stablehlo.slice %4 [2:5] : (tensor<5xf32>) -> tensor<3xf32>
    %7 = stablehlo.maximum %5, %6 : tensor<3xf32>
    %8 = stablehlo.slice %4 [0:2] : (tensor<5xf32>) -> tensor<2xf32>
    %9 = stablehlo.concatenate %8, %7, dim = 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
    %10 = stablehlo.slice %9 [0:1] : (tensor<5xf32>) -> tensor<1xf32>
    %11 = stablehlo.slice %9 [4:5] : (tensor<5xf32>) -> tensor<1xf32>
    %12 = stablehlo.maximum %10, %11 : tensor<1xf32>
    %13 = stablehlo.slice %9 [0:4] : (tensor<5xf32>) -> tensor<4xf32>
    %14 = stablehlo.concatenate %13, %12, dim = 0 : (tensor<4xf32>, tensor<1xf32>) -> tensor<5xf32>
    return %14 : tensor<5xf32>
  }
}
