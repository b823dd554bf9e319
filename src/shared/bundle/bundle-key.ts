import { CloudCrypter } from '../diy/cloud-crypter.ts';
import { PassphraseCrypter } from '../diy/passphrase-crypter.ts';
import type { SecretsCrypter, SecretsProvider } from '../diy/secrets-crypter.ts';
import { type Config, ConfigError } from '../platform/config/config.ts';
import { type KmsKey, parseKmsUrl } from '../platform/kms/kms-url.ts';
import { openKms } from '../platform/kms/open-kms.ts';
import { kmsAccess } from '../secrets/open-master-keys.ts';

export type BundleSecret = { readonly passphrase: string } | { readonly kms: KmsKey };

export interface BundleKey {
  readonly crypter: SecretsCrypter;
  /** Opens the key again: the salt of a passphrase, or the key wrapped by a KMS. */
  readonly stored: string;
}

type Parts = Pick<Config, 'kms' | 'secrets'>;

export function bundleSecretOf({ bundleKms, secrets }: Pick<Config, 'bundleKms' | 'secrets'>): BundleSecret {
  const refuse = (reason: string): never => {
    throw new ConfigError(`Invalid settings:\n  ${reason}`);
  };
  const passphrase = secrets.bundlePassphrase;
  if (bundleKms === null)
    return passphrase === null
      ? refuse('HOLDFAST_BUNDLE_URL: needs HOLDFAST_BUNDLE_PASSPHRASE or HOLDFAST_BUNDLE_KMS')
      : { passphrase };
  if (passphrase !== null) return refuse('HOLDFAST_BUNDLE_KMS: cannot be set with HOLDFAST_BUNDLE_PASSPHRASE');
  const kms = parseKmsUrl(bundleKms);
  return typeof kms === 'string' ? refuse(`HOLDFAST_BUNDLE_KMS: ${kms}`) : { kms };
}

export async function createBundleKey(secret: BundleSecret, config: Parts): Promise<BundleKey> {
  if ('passphrase' in secret) {
    const crypter = await PassphraseCrypter.create(secret.passphrase);
    return { crypter, stored: crypter.salt };
  }
  const crypter = await CloudCrypter.create(await openKms(secret.kms, kmsAccess(config)), cliUrlOf(secret.kms));
  return { crypter, stored: toStored(crypter) };
}

/** Null if the settings name another passphrase or KMS key. */
export async function openBundleKey(secret: BundleSecret, stored: string, config: Parts): Promise<BundleKey | null> {
  if ('passphrase' in secret) {
    const crypter = await PassphraseCrypter.open(secret.passphrase, stored);
    return crypter && { crypter, stored };
  }
  const url = cliUrlOf(secret.kms);
  const [wrapped = '', storedUrl] = stored.split(' ');
  if (storedUrl !== url) return null;
  const crypter = await CloudCrypter.open(await openKms(secret.kms, kmsAccess(config)), url, wrapped);
  return crypter && { crypter, stored };
}

/** The CLI may reach a KMS by another URL. */
export function isKeyOf(stored: string, { state, type }: SecretsProvider): boolean {
  return stored.split(' ')[0] === state[type === 'passphrase' ? 'salt' : 'encryptedkey'];
}

/** A salt contains no space. */
function toStored({ provider, wrapped }: CloudCrypter): string {
  return `${wrapped} ${String(provider.state['url'])}`;
}

/** The CLI finds the key by this URL (gocloud.dev/secrets), and takes Vault's address from its environment. */
export function cliUrlOf(kms: KmsKey): string {
  if (kms.kind === 'google') return `gcpkms://${kms.key}`;
  if (kms.kind === 'vault')
    return `hashivault://${kms.key}${kms.mount === 'transit' ? '' : `?engine=${encodeURIComponent(kms.mount)}`}`;
  const { endpoint, key, region } = kms;
  const parameters = new URLSearchParams({ ...(region && { region }), ...(endpoint && { endpoint }) });
  return `awskms://${key.startsWith('arn:') ? '/' : ''}${key}${parameters.size === 0 ? '' : `?${parameters}`}`;
}
