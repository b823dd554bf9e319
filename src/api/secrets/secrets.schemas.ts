import { Type } from 'typebox';
import { Maybe, StringMap } from '../platform/protocol/core.ts';

export const EncryptRequest = Type.Object({ plaintext: Type.String() });
export const EncryptResponse = Type.Object({ ciphertext: Type.String() });
export const DecryptRequest = Type.Object({ ciphertext: Type.String() });
export const DecryptResponse = Type.Object({ plaintext: Type.String() });
/** The current CLI sends at most 1000 values; older ones send all values of a state (pkg/resource/stack/secrets.go). */
const maxItems = 100_000;
export const BatchEncryptRequest = Type.Object({ plaintexts: Type.Array(Type.String(), { maxItems }) });
export const BatchEncryptResponse = Type.Object({ ciphertexts: Type.Array(Type.String()) });
export const BatchDecryptRequest = Type.Object({ ciphertexts: Type.Array(Type.String(), { maxItems }) });
/** Keys are exactly the request's strings. */
export const BatchDecryptResponse = Type.Object({ plaintexts: StringMap });
/** apitype.Log3rdPartyDecryptionEvent: which secret was shown, or which command showed several. */
export const LogDecryptionRequest = Type.Object({
  secretName: Maybe(Type.String()),
  commandName: Maybe(Type.String()),
});
