/** Whether a system call failed with this code. Under Jest the errors of Node's own modules are not instances of Error. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
