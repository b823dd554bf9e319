/**
 * Whether a system call failed with `code`. Does not use `instanceof Error`: in Jest, errors of Node's modules fail it.
 */
export function hasErrorCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
