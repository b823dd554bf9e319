import { expect, test } from '@jest/globals';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { TransferError } from '../../../shared/diy/diy-layout.ts';
import { keyForExport, openKey } from './archive-key.ts';

async function person() {
  const identity = await generateX25519Identity();
  return { identity, recipient: await identityToRecipient(identity) };
}

test('the keys of an archive all have the same recipients, in any order', async () => {
  const [ann, bob] = [await person(), await person()];
  const first = await keyForExport([], { passphrase: null, recipients: [ann.recipient, bob.recipient] });
  const second = await keyForExport(first.keys, { passphrase: null, recipients: [bob.recipient, ann.recipient] });
  expect(second.keys).toHaveLength(2);
  for (const key of second.keys) await openKey(key, { identities: ann.identity, passphrase: null });
});

test('an archive gets no key that its earlier recipients cannot open, or of which they open only some', async () => {
  const [ann, bob] = [await person(), await person()];
  const { keys } = await keyForExport([], { passphrase: null, recipients: [ann.recipient] });
  for (const recipients of [[bob.recipient], [ann.recipient, bob.recipient]]) {
    const refused = keyForExport(keys, { passphrase: null, recipients });
    await expect(refused).rejects.toThrow(TransferError);
    await expect(refused).rejects.toThrow('use the same recipients or passphrase, or name another location');
  }
});
