import { type BundleKey, type BundleSecret, isKeyOf, openBundleKey } from '../../shared/bundle/bundle-key.ts';
import { createBundleRepository } from '../../shared/bundle/bundle-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { reencryptConfig } from '../../shared/diy/history-info.ts';
import { type DocumentSecrets, reencryptDocument } from '../../shared/diy/reencrypt-document.ts';
import type { SecretsCrypter, SecretsProvider } from '../../shared/diy/secrets-crypter.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { Arrival } from '../moving/stack-importer.ts';
import { serverUrl } from '../moving/stack-secrets.ts';

/**
 * Re-encrypts secrets of the bundle's key with the keys of the server, for a stack that exists here. Secrets of other passphrases and keys
 * are kept.
 */
export async function createArrival(
  { cipher, config, states }: AppContext,
  { ref, stackId }: { readonly ref: StackRef; readonly stackId: string },
  crypter: SecretsCrypter,
): Promise<Arrival> {
  const reencrypt = async (ciphertexts: readonly string[]): Promise<(string | null)[]> => {
    const plaintexts = ciphertexts.map((each) => crypter.decrypt(each));
    const own = plaintexts.filter((each) => each !== null);
    if (own.length === 0) return plaintexts.map(() => null);
    const encrypted = (await cipher.encrypt(stackId, own)).values();
    return plaintexts.map((each) => each && (encrypted.next().value as Buffer).toString('base64'));
  };
  const here = await readProvider(states, ref);
  const state = { url: serverUrl(config), owner: ref.organization, project: ref.project, stack: ref.stack };
  const service = here?.type === 'service' ? here : { type: 'service', state };
  return {
    document: (document) =>
      reencryptDocument(
        document,
        {
          reencrypt,
          provider: async (current) => (isSameKey(current, crypter.provider) ? service : null),
        },
        { provider: null, reencrypted: 0, kept: 0 },
      ),
    config: (stored) => reencryptConfig(stored, reencrypt),
    takeKept: () => 0,
  };
}

/** Whether both providers have the same key. The CLI may reach a KMS by another URL. */
function isSameKey(a: SecretsProvider, b: SecretsProvider): boolean {
  const member = b.type === 'passphrase' ? 'salt' : 'encryptedkey';
  return a.type === b.type && a.state[member] === b.state[member];
}

/** The current key, unless the state names an earlier one. Null: the settings no longer open the current key. */
export async function findBundleKey(
  { config, db }: AppContext,
  secret: BundleSecret,
  state: AsyncIterable<Buffer>,
): Promise<BundleKey | null> {
  const keys = await createBundleRepository(db).findKeys();
  if (!keys) return null;
  const provider = await providerOf(state);
  const earlier = provider && !isKeyOf(keys.key, provider) && keys.earlier.find((key) => isKeyOf(key, provider));
  if (!earlier) return openBundleKey(secret, keys.key, config);
  const key = await openBundleKey(secret, earlier, config);
  if (key) return key;
  throw new TransferError(
    'its secrets are encrypted with an earlier key of the bundle: run this command with the HOLDFAST_BUNDLE_PASSPHRASE or HOLDFAST_BUNDLE_KMS of then',
  );
}

/** The secrets provider of the newest local state. */
async function readProvider(states: AppContext['states'], ref: StackRef): Promise<DocumentSecrets['provider']> {
  const head = await states.readHead(ref);
  return head && providerOf(head.state.bytes);
}

async function providerOf(document: AsyncIterable<Buffer>): Promise<DocumentSecrets['provider']> {
  const found: DocumentSecrets = { provider: null, reencrypted: 0, kept: 0 };
  const keep = { provider: async () => null, reencrypt: async (values: readonly string[]) => values.map(() => null) };
  for await (const _ of reencryptDocument(document, keep, found));
  return found.provider;
}
