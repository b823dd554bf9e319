import { createHmac } from 'node:crypto';

/** The path at which a server proves to which installation it belongs. */
export const proofPath = '/healthz/stream';

/** The pause between the two events of this stream. A proxy that buffers the response delivers both at once. */
export const proofPauseMs = 1_000;

/** The proof requires the installation's id, but does not reveal it. */
export function proveInstallation(installation: string, nonce: string): string {
  return createHmac('sha256', installation).update(nonce).digest('hex');
}
