program "buffers" on {0, 1} () {
  %0 = simp.constant() {parties = {0, 1}, value = dense<i64[17]>@bb25b5201ac6c374} : i64[17]@{0, 1}
  %1 = simp.constant() {parties = {0, 1}, value = dense<bool[17]>@91f7ccdfd57fc529} : bool[17]@{0, 1}
  %2 = simp.constant() {parties = {0, 1}, value = dense<f32[2]>@d652dacf72ab4b74} : f32[2]@{0, 1}
  %3 = simp.constant() {parties = {0, 1}, value = dense<f64[3]>@49a9b3d4da57afcf} : f64[3]@{0, 1}
  %4 = simp.constant() {parties = {0, 1}, value = dense<c64[1]>@ee4ac73c2bd27756} : c64[1]@{0, 1}
  %5 = simp.constant() {parties = {0, 1}, value = dense<c128[]>@fc62429c3e69001d} : c128[]@{0, 1}
  %6 = simp.constant() {parties = {0, 1}, value = dense<c128[0]>@e3b0c44298fc1c14} : c128[0]@{0, 1}
  %7 = simp.constant() {parties = {0, 1}, value = dense<u8[3, 8]>@1d64add2a6388367} : u8[3, 8]@{0, 1}
  %8 = simp.constant() {parties = {1}, value = dense<i64[17]>@bb25b5201ac6c374} : i64[17]@{1}
  return %0, %8
}
buffers {
  @bb25b5201ac6c374 = "AAAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAwAAAAAAAAAEAAAAAAAAAAUAAAAAAAAABgAAAAAAAAAHAAAAAAAAAAgAAAAAAAAACQAAAAAAAAAKAAAAAAAAAAsAAAAAAAAADAAAAAAAAAANAAAAAAAAAA4AAAAAAAAADwAAAAAAAAAQAAAAAAAAAA=="
  @91f7ccdfd57fc529 = "AQAAAQAAAQAAAQAAAQAAAQA="
  @d652dacf72ab4b74 = "AADAfwAAgD8="
  @49a9b3d4da57afcf = "AAAAAAAA8H8AAAAAAADw/wAAAAAAAACA"
  @ee4ac73c2bd27756 = "AACAPwAAAMA="
  @fc62429c3e69001d = "AAAAAAAAAAAAAAAAAADwPw=="
  @e3b0c44298fc1c14 = ""
  @1d64add2a6388367 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
}
