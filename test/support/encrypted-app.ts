import { setSettings } from './test-app.ts';

/** Encrypts every document in the blob store, except those that a test wants in rows. */
export async function runEncrypted(importTests: () => Promise<unknown>): Promise<void> {
  setSettings({ HOLDFAST_ENCRYPT_DOCUMENTS: 'true', HOLDFAST_INLINE_BYTES: '1' });
  await importTests();
}
