import { DecryptCommand, EncryptCommand, KMSClient, type KMSClientConfig } from '@aws-sdk/client-kms';
import { withTimeout } from '../timeout/with-timeout.ts';
import { type Kms, type KmsAccess, KmsError, type KmsFault } from './kms.ts';
import { faultOfStatus, shortReason } from './kms-requests.ts';
import type { KmsKey } from './kms-url.ts';

/** Each call is made once or twice per start, and the process itself waits longer. */
const maxAttempts = 3;
const connectTimeoutMs = 3_000;
/** Longer than the SDK's pause between attempts. */
const retryPauseMs = 2_000;

const mismatches = new Set(['InvalidCiphertextException', 'IncorrectKeyException']);
const passing = new Set([
  'DependencyTimeoutException',
  'KMSInternalException',
  'KeyUnavailableException',
  'LimitExceededException',
  'RequestLimitExceeded',
  'ThrottlingException',
  // The metadata service of the instance may not be ready yet.
  'CredentialsProviderError',
]);

/** Credentials come from the AWS environment: variables, files, container or instance role. */
export function openAwsKms(key: Extract<KmsKey, { kind: 'aws' }>, { timeoutMs }: KmsAccess): Kms {
  const name = `AWS KMS key ${key.key}${key.region === null ? '' : ` in ${key.region}`}`;
  const callMs = maxAttempts * (timeoutMs + retryPauseMs);
  const config: KMSClientConfig = {
    maxAttempts,
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
    },
    ...(key.region === null ? {} : { region: key.region }),
    ...(key.endpoint === null ? {} : { endpoint: key.endpoint }),
  };

  /** One client per call: calls are rare, and nothing stays open between them. */
  const call = async <T>(work: (client: KMSClient) => Promise<T>): Promise<T> => {
    const client = new KMSClient(config);
    // The SDK's request limits end with the headers; the body may never arrive.
    const late = () => new KmsError({ name }, 'passing', 'no response in time');
    try {
      return await withTimeout(work(client), callMs, late);
    } catch (error) {
      throw kmsErrorOf({ name }, error);
    } finally {
      client.destroy();
    }
  };
  const contextOf = (context: string | null) => ({
    KeyId: key.key,
    ...(context === null ? {} : { EncryptionContext: { holdfast: context } }),
  });

  return {
    name,
    wrap: (plain, context) =>
      call(async (client) => {
        const { CiphertextBlob } = await client.send(new EncryptCommand({ ...contextOf(context), Plaintext: plain }));
        return required({ name }, CiphertextBlob);
      }),
    unwrap: (wrapped, context) =>
      call(async (client) => {
        const request = new DecryptCommand({ ...contextOf(context), CiphertextBlob: wrapped });
        return required({ name }, (await client.send(request)).Plaintext);
      }),
  };
}

function required(kms: Pick<Kms, 'name'>, bytes: Uint8Array | undefined): Buffer {
  if (bytes === undefined) throw new KmsError(kms, 'refused', 'the response lacks the bytes');
  return Buffer.from(bytes);
}

function kmsErrorOf(kms: Pick<Kms, 'name'>, error: unknown): KmsError {
  if (error instanceof KmsError) return error;
  const { $metadata, message, name } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  return new KmsError(kms, faultOf(error, status), reasonOf(name, message));
}

function reasonOf(name: string, message: string): string {
  // Signature errors quote the request.
  if (name === 'InvalidSignatureException') return 'the credentials are not valid';
  const text = shortReason(message.replace(/^AWS SDK error wrapper for (Error: )?/, ''));
  if (name === 'Error') return text;
  return text === '' || text === 'UnknownError' ? name : `${name}: ${text}`;
}

function faultOf(error: unknown, status: number | undefined): KmsFault {
  const { message, name } = error as Error;
  if (mismatches.has(name)) return 'mismatch';
  if (passing.has(name)) return 'passing';
  // Without a response, the reason is the network or the settings of this process.
  if (status === undefined) return message === 'Region is missing' ? 'refused' : 'passing';
  return faultOfStatus(status);
}
