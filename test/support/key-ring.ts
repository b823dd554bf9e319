import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { parseMasterKeys } from '../../src/shared/secrets/master-key-list.ts';

/** The keys are in the text themselves. */
export function keyRingOf(text: string): KeyRing {
  return new KeyRing(new Map(parseMasterKeys(text).map(({ bytes, id }) => [id, bytes as Buffer])));
}
