/** The states of an update, spelled as in `application/vnd.service+8`. */
export type UpdateStatus = 'not started' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type EndStatus = 'succeeded' | 'failed' | 'cancelled';
export type UpdateKind = 'update' | 'preview' | 'refresh' | 'destroy' | 'import' | 'rename';

export function isActive(status: UpdateStatus): boolean {
  return status === 'not started' || status === 'running';
}
