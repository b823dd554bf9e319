/** Spelled as in `application/vnd.service+8`. */
export type UpdateStatus = 'not started' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type EndStatus = 'succeeded' | 'failed' | 'cancelled';
export type UpdateKind = 'update' | 'preview' | 'refresh' | 'destroy' | 'import' | 'rename';

/** Must equal the SQL function of this name. A preview that locks its stack needs the permission for updates. */
export function permissionOfUpdate(update: {
  readonly dryRun: boolean;
  readonly exclusive: boolean;
}): 'preview' | 'write' {
  return update.dryRun && !update.exclusive ? 'preview' : 'write';
}

export function isActive(status: UpdateStatus): boolean {
  return status === 'not started' || status === 'running';
}
