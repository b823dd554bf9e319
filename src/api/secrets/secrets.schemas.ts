import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { Maybe, StringMap } from '../platform/protocol/core.ts';

export const EncryptRequest = component('EncryptRequest', Type.Object({ plaintext: Type.String() }));
export const EncryptResponse = component('EncryptResponse', Type.Object({ ciphertext: Type.String() }));
export const DecryptRequest = component('DecryptRequest', Type.Object({ ciphertext: Type.String() }));
export const DecryptResponse = component('DecryptResponse', Type.Object({ plaintext: Type.String() }));
/** The current CLI sends at most 1000 values; older ones send all values of a state (pkg/resource/stack/secrets.go). */
const maxItems = 100_000;
export const BatchEncryptRequest = component(
  'BatchEncryptRequest',
  Type.Object({ plaintexts: Type.Array(Type.String(), { maxItems }) }),
);
export const BatchEncryptResponse = component(
  'BatchEncryptResponse',
  Type.Object({ ciphertexts: Type.Array(Type.String()) }),
);
export const BatchDecryptRequest = component(
  'BatchDecryptRequest',
  Type.Object({ ciphertexts: Type.Array(Type.String(), { maxItems }) }),
);
/** The keys are exactly the request's strings. */
export const BatchDecryptResponse = component('BatchDecryptResponse', Type.Object({ plaintexts: StringMap }));
/** apitype.Log3rdPartyDecryptionEvent: the secret that was shown, or the command that showed several. */
export const LogDecryptionRequest = component(
  'LogDecryptionRequest',
  Type.Object({
    secretName: Maybe(Type.String()),
    commandName: Maybe(Type.String()),
  }),
  { secretName: 'website:password' },
);
