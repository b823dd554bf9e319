import { type Kms, type KmsAccess, KmsError, type KmsFault, VaultTokenMissingError } from './kms.ts';
import { bytesOf, faultOfStatus, type KmsResponse, postJson, shortReason } from './kms-requests.ts';
import type { KmsKey } from './kms-url.ts';

/** Statuses of standbys, and of replicas that lag behind. */
const passingStatuses = new Set([412, 472, 473]);
const mismatch = /message authentication failed|invalid ciphertext|wrong key|decryption error|ciphertext.*too short/i;

/** A key in the transit engine of Vault or OpenBao. */
export function openVaultTransit(vault: Extract<KmsKey, { kind: 'vault' }>, access: KmsAccess): Kms {
  const kms = { name: `Vault key ${vault.mount}/${vault.key} on ${new URL(vault.server).host}` };
  const call = async (verb: 'encrypt' | 'decrypt', body: object): Promise<Record<string, unknown>> => {
    const token = tokenOf(kms, access);
    if (token === null)
      throw new KmsError(kms, 'refused', 'HOLDFAST_VAULT_TOKEN or HOLDFAST_VAULT_TOKEN_FILE is not set');
    const path = [...vault.mount.split('/'), verb, vault.key].map(encodeURIComponent).join('/');
    const headers = {
      'x-vault-token': token,
      'x-vault-request': 'true',
      ...(vault.namespace === null ? {} : { 'x-vault-namespace': vault.namespace }),
    };
    const request = { headers, body, timeoutMs: access.timeoutMs };
    const response = await postJson(kms, `${vault.server}/v1/${path}`, request);
    if (response.status !== 200) throw kmsErrorOf(kms, response, token);
    return ((response.json as { data?: unknown } | null)?.data ?? {}) as Record<string, unknown>;
  };
  const required = (bytes: Buffer | null): Buffer => {
    if (bytes === null) throw new KmsError(kms, 'refused', 'the response lacks the bytes');
    return bytes;
  };
  const boundTo = (context: string | null) =>
    context === null ? {} : { associated_data: Buffer.from(context).toString('base64') };
  return {
    ...kms,
    wrap: async (plain, context) => {
      const { ciphertext } = await call('encrypt', { plaintext: plain.toString('base64'), ...boundTo(context) });
      // `vault:v1:…`, which includes the version of the key.
      return required(typeof ciphertext === 'string' && ciphertext !== '' ? Buffer.from(ciphertext) : null);
    },
    unwrap: async (wrapped, context) =>
      required(bytesOf((await call('decrypt', { ciphertext: wrapped.toString(), ...boundTo(context) }))['plaintext'])),
  };
}

function tokenOf(kms: Pick<Kms, 'name'>, access: KmsAccess): string | null {
  try {
    return access.readVaultToken();
  } catch (error) {
    // An agent will write the file.
    if (error instanceof VaultTokenMissingError) throw new KmsError(kms, 'passing', error.message, { cause: error });
    throw error;
  }
}

function kmsErrorOf(kms: Pick<Kms, 'name'>, { json, status }: KmsResponse, token: string): KmsError {
  const { errors } = (json ?? {}) as { errors?: unknown };
  const [first] = Array.isArray(errors) ? errors : [];
  const text = typeof first === 'string' && first !== '' ? first : `HTTP status ${status}`;
  const reason = shortReason(text.replaceAll(token, '[redacted]'));
  if (status >= 300 && status < 400)
    return new KmsError(
      kms,
      'refused',
      'it redirects elsewhere: name the active server, or one that forwards requests',
    );
  return new KmsError(kms, faultOf(status, reason), reason);
}

function faultOf(status: number, reason: string): KmsFault {
  if (status === 400 && mismatch.test(reason)) return 'mismatch';
  return passingStatuses.has(status) ? 'passing' : faultOfStatus(status);
}
