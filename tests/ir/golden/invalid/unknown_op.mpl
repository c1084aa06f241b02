// error: VerifyError: unknown op 'nosuch.op'; no plugin that is installed provides the dialect 'nosuch'
program "p" on {0, 1} () {
  nosuch.op()
  return
}
