import { type FakeAnswer, FakeKey, type FakeKms, type FakeRequest, startFakeKms } from './fake-kms.ts';

/** With the data that a process needs to use it. */
export interface FakeService extends AsyncDisposable {
  readonly kms: FakeKms;
  /** Creates a key, and returns its URL. */
  addKey(name: string): { readonly url: string; readonly key: FakeKey };
  /** Variables of AWS and Google, or settings for Vault. */
  readonly environment: Readonly<Record<string, string>>;
  /** Must not be in any message. */
  readonly secret: string;
}

const base64 = (bytes: Buffer | string): string => Buffer.from(bytes).toString('base64');
const unbase64 = (text: unknown): Buffer => Buffer.from(String(text), 'base64');

/** AWS KMS: JSON 1.1 with the operation in `X-Amz-Target`, signed with SigV4. A ciphertext names its key. */
export async function startFakeAws(): Promise<FakeService> {
  const accessKeyId = 'AKIDEXAMPLE';
  const secret = 'aws-secret-access-key-of-the-test';
  const refuse = (type: string, message: string, status = 400): FakeAnswer => ({
    status,
    body: { __type: type, message },
    headers: { 'x-amzn-errortype': type },
  });
  const contextOf = (json: { EncryptionContext?: object }) => JSON.stringify(json.EncryptionContext ?? {});
  const answer = ({ headers, json, method, path }: FakeRequest, { keys, mode }: FakeKms): FakeAnswer => {
    if (method !== 'POST' || path !== '/' || headers['content-type'] !== 'application/x-amz-json-1.1')
      return refuse('SerializationException', 'not a request of the JSON protocol');
    const [, user, signed] =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/eu-central-1\/kms\/aws4_request, SignedHeaders=([^,]+), Signature=[0-9a-f]{64}$/.exec(
        headers.authorization ?? '',
      ) ?? [];
    if (user !== accessKeyId || !signed?.includes('x-amz-target'))
      return refuse('UnrecognizedClientException', 'The security token included in the request is invalid.');
    if (mode === 'denied') return refuse('AccessDeniedException', 'User is not authorized to perform: kms:Decrypt');
    // Without the id of a key, the ciphertext names the key.
    const id = json.KeyId ?? unbase64(json.CiphertextBlob).toString('latin1').split('\0')[0];
    const key = keys.get(id);
    if (!key) return refuse('NotFoundException', `Key '${id}' does not exist`);
    if (!key.isEnabled) return refuse('DisabledException', `${id} is disabled.`);
    if (headers['x-amz-target'] === 'TrentService.Encrypt') {
      const { bytes, version } = key.wrap(unbase64(json.Plaintext), contextOf(json));
      const blob = Buffer.concat([Buffer.from(`${json.KeyId}\0${String(version).padStart(4, '0')}`), bytes]);
      return { status: 200, body: { CiphertextBlob: base64(blob), KeyId: json.KeyId } };
    }
    if (headers['x-amz-target'] !== 'TrentService.Decrypt') return refuse('UnknownOperationException', '');
    const blob = unbase64(json.CiphertextBlob);
    const at = blob.indexOf(0);
    if (at < 0) return refuse('InvalidCiphertextException', '');
    if (blob.subarray(0, at).toString() !== id)
      return refuse('IncorrectKeyException', 'The key ID in the request does not identify a CMK that can perform this');
    const plain = key.unwrap(Number(blob.subarray(at + 1, at + 5).toString()), blob.subarray(at + 5), contextOf(json));
    return plain
      ? { status: 200, body: { Plaintext: base64(plain), KeyId: id } }
      : refuse('InvalidCiphertextException', '');
  };
  const kms = await startFakeKms(answer);
  return serviceOf(kms, secret, {
    urlOf: (name) => `awskms://alias/${name}?region=eu-central-1&endpoint=http://127.0.0.1:${kms.port}`,
    keyName: (name) => `alias/${name}`,
    environment: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret, AWS_EC2_METADATA_DISABLED: 'true' },
  });
}

/** Cloud KMS with a metadata server, as on a machine of Google. */
async function startFakeGoogle(): Promise<FakeService> {
  const secret = 'ya29.token-of-the-test';
  const refuse = (status: number, name: string, message: string): FakeAnswer => ({
    status,
    body: { error: { code: status, message, status: name } },
  });
  const answer = ({ headers, json, method, path }: FakeRequest, { keys, mode }: FakeKms): FakeAnswer => {
    const [, name = '', verb] = /^\/v1\/(projects\/.+\/cryptoKeys\/[^/:]+):(encrypt|decrypt)$/.exec(path) ?? [];
    if (method !== 'POST' || !verb) return refuse(404, 'NOT_FOUND', 'no such method');
    if (headers.authorization !== `Bearer ${secret}`) return refuse(401, 'UNAUTHENTICATED', 'invalid credentials');
    if (mode === 'denied') return refuse(403, 'PERMISSION_DENIED', `Permission denied on resource '${name}'`);
    const key = keys.get(name);
    if (!key) return refuse(404, 'NOT_FOUND', `CryptoKey ${name} not found.`);
    if (!key.isEnabled)
      return refuse(
        400,
        'FAILED_PRECONDITION',
        `${name}/cryptoKeyVersions/1 is not enabled, current state is: DISABLED.`,
      );
    const context = String(json.additionalAuthenticatedData);
    if (verb === 'encrypt') {
      const { bytes, version } = key.wrap(unbase64(json.plaintext), context);
      return { status: 200, body: { name, ciphertext: base64(Buffer.concat([Buffer.from([version]), bytes])) } };
    }
    const blob = unbase64(json.ciphertext);
    const plain = key.unwrap(blob[0] as number, blob.subarray(1), context);
    return plain
      ? { status: 200, body: { plaintext: base64(plain), usedPrimary: true } }
      : refuse(400, 'INVALID_ARGUMENT', "Decryption failed: verify that 'name' refers to the correct CryptoKey.");
  };
  const metadata = ({ headers, path }: FakeRequest): FakeAnswer | null => {
    if (!path.startsWith('/computeMetadata/')) return null;
    const found = { 'metadata-flavor': 'Google' };
    if (headers['metadata-flavor'] !== 'Google') return { status: 403, body: {}, headers: found };
    return { status: 200, body: { access_token: secret, expires_in: 3600, token_type: 'Bearer' }, headers: found };
  };
  const kms = await startFakeKms(answer, metadata);
  const keyName = (name: string) => `projects/p1/locations/eu/keyRings/ring/cryptoKeys/${name}`;
  return serviceOf(kms, secret, {
    urlOf: (name) => `gcpkms://${keyName(name)}?endpoint=http://127.0.0.1:${kms.port}`,
    keyName,
    environment: {
      GCE_METADATA_HOST: `127.0.0.1:${kms.port}`,
      METADATA_SERVER_DETECTION: 'assume-present',
      GOOGLE_CLOUD_PROJECT: 'p1',
    },
  });
}

/** The transit engine of Vault and OpenBao. */
export async function startFakeVault(): Promise<FakeService> {
  const secret = 'hvs.token-of-the-test';
  const refuse = (status: number, message: string): FakeAnswer => ({ status, body: { errors: [message] } });
  const answer = ({ headers, json, method, path }: FakeRequest, { keys, mode }: FakeKms): FakeAnswer => {
    const [, verb, name = ''] = /^\/v1\/team\/transit\/(encrypt|decrypt)\/([^/]+)$/.exec(path) ?? [];
    if (!['POST', 'PUT'].includes(method) || !verb) return refuse(404, 'no handler for route');
    // The service answers so for an invalid token, too.
    if (headers['x-vault-token'] !== secret || mode === 'denied') return refuse(403, 'permission denied');
    const key = keys.get(name);
    // The token may not create keys.
    if (!key) return verb === 'encrypt' ? refuse(403, 'permission denied') : refuse(400, 'encryption key not found');
    if (!key.isEnabled) return refuse(400, 'encryption key not found');
    const context = String(json.associated_data);
    if (verb === 'encrypt') {
      const { bytes, version } = key.wrap(unbase64(json.plaintext), context);
      const data = { ciphertext: `vault:v${version}:${base64(bytes)}`, key_version: version };
      return { status: 200, body: { request_id: 'r', lease_id: '', data } };
    }
    const [, version, body] = /^vault:v(\d+):(.+)$/.exec(String(json.ciphertext)) ?? [];
    if (body === undefined) return refuse(400, 'invalid ciphertext: no prefix');
    if (Number(version) < key.minVersion)
      return refuse(400, 'ciphertext or signature version is disallowed by policy (too old)');
    const plain = key.unwrap(Number(version), unbase64(body), context);
    return plain
      ? { status: 200, body: { request_id: 'r', data: { plaintext: base64(plain) } } }
      : refuse(400, 'cipher: message authentication failed');
  };
  const kms = await startFakeKms(answer);
  return serviceOf(kms, secret, {
    urlOf: (name) => `vault://127.0.0.1:${kms.port}/team/transit/${name}?tls=off`,
    keyName: (name) => name,
    environment: { HOLDFAST_VAULT_TOKEN: secret },
  });
}

function serviceOf(
  kms: FakeKms,
  secret: string,
  parts: {
    readonly urlOf: (name: string) => string;
    readonly keyName: (name: string) => string;
    readonly environment: Readonly<Record<string, string>>;
  },
): FakeService {
  return {
    kms,
    secret,
    environment: parts.environment,
    addKey: (name) => {
      const key = new FakeKey();
      kms.keys.set(parts.keyName(name), key);
      return { url: parts.urlOf(name), key };
    },
    [Symbol.asyncDispose]: () => kms[Symbol.asyncDispose](),
  };
}

/** All services, for tests that every one must pass. */
export const fakeServices: readonly (readonly [string, () => Promise<FakeService>])[] = [
  ['AWS KMS', startFakeAws],
  ['Google Cloud KMS', startFakeGoogle],
  ['Vault transit', startFakeVault],
];

/** Returns a function that restores the variables of this process. */
export function setEnvironment(values: Readonly<Record<string, string>>): () => void {
  const before = new Map(Object.keys(values).map((name) => [name, process.env[name]]));
  Object.assign(process.env, values);
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
}
