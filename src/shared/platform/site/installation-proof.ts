import { createHmac } from 'node:crypto';

/** Path at which a server proves which installation it belongs to. */
export const proofPath = '/healthz/stream';

/** Time between the two events of that stream, in ms. A proxy that collects the response delivers both at once. */
export const proofPauseMs = 1_000;

/** What only a process that knows the id of the installation can say about the nonce. It does not reveal the id. */
export function proveInstallation(installation: string, nonce: string): string {
  return createHmac('sha256', installation).update(nonce).digest('hex');
}
