import { GoogleAuth } from 'google-auth-library';
import { withTimeout } from '../timeout/with-timeout.ts';
import { type Kms, type KmsAccess, KmsError, type KmsFault } from './kms.ts';
import { bytesOf, faultOfStatus, type KmsResponse, postJson, shortReason } from './kms-requests.ts';
import type { KmsKey } from './kms-url.ts';

const scope = 'https://www.googleapis.com/auth/cloudkms';

/** Uses Application Default Credentials. */
export function openGoogleKms(google: Extract<KmsKey, { kind: 'google' }>, { timeoutMs }: KmsAccess): Kms {
  const kms = { name: `Google Cloud KMS key ${google.key}` };
  const auth = new GoogleAuth({ scopes: [scope] });
  const call = async (verb: 'encrypt' | 'decrypt', body: object): Promise<Record<string, unknown>> => {
    const token = await accessToken(kms, auth, timeoutMs);
    const url = `${google.endpoint}/v1/${google.key}:${verb}`;
    const response = await postJson(kms, url, { headers: { authorization: `Bearer ${token}` }, body, timeoutMs });
    if (response.status !== 200) throw kmsErrorOf(kms, response);
    return (response.json ?? {}) as Record<string, unknown>;
  };
  const required = (bytes: Buffer | null): Buffer => {
    if (bytes === null) throw new KmsError(kms, 'refused', 'the response lacks the bytes');
    return bytes;
  };
  const boundTo = (context: string | null) =>
    context === null ? {} : { additionalAuthenticatedData: Buffer.from(context).toString('base64') };
  return {
    ...kms,
    wrap: async (plain, context) =>
      required(
        bytesOf((await call('encrypt', { plaintext: plain.toString('base64'), ...boundTo(context) }))['ciphertext']),
      ),
    unwrap: async (wrapped, context) =>
      required(
        bytesOf((await call('decrypt', { ciphertext: wrapped.toString('base64'), ...boundTo(context) }))['plaintext']),
      ),
  };
}

/** The library's errors may contain requests with credentials, so they are not passed on as causes. */
async function accessToken(kms: Pick<Kms, 'name'>, auth: GoogleAuth, timeoutMs: number): Promise<string> {
  const late = () => new KmsError(kms, 'passing', 'no access token in time');
  try {
    const token = await withTimeout(auth.getAccessToken(), timeoutMs, late);
    if (token) return token;
  } catch (error) {
    if (error instanceof KmsError) throw error;
    const status = Number((error as { status?: unknown }).status);
    const fault = status >= 400 ? faultOfStatus(status) : 'passing';
    throw new KmsError(kms, fault, `no access token: ${shortReason((error as Error).message)}`);
  }
  throw new KmsError(kms, 'refused', 'no access token');
}

function kmsErrorOf(kms: Pick<Kms, 'name'>, { json, status }: KmsResponse): KmsError {
  const { error } = (json ?? {}) as { error?: { message?: unknown; status?: unknown } };
  const reason = shortReason(typeof error?.message === 'string' ? error.message : `HTTP status ${status}`);
  const isMismatch = status === 400 && error?.status === 'INVALID_ARGUMENT' && /decryption failed/i.test(reason);
  const fault: KmsFault = isMismatch ? 'mismatch' : faultOfStatus(status);
  return new KmsError(kms, fault, reason);
}
