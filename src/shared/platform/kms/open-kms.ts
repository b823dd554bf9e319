import type { Kms, KmsAccess } from './kms.ts';
import type { KmsKey } from './kms-url.ts';

/** Sends nothing. */
export async function openKms(key: KmsKey, access: KmsAccess): Promise<Kms> {
  // The SDKs cost startup time and memory.
  if (key.kind === 'aws') return (await import('./aws-kms.ts')).openAwsKms(key, access);
  if (key.kind === 'google') return (await import('./google-kms.ts')).openGoogleKms(key, access);
  return (await import('./vault-transit.ts')).openVaultTransit(key, access);
}
