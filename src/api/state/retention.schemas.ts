import { Type } from 'typebox';
import { IsoTimestamp } from '../platform/protocol/core.ts';

export const SetLegalHoldRequest = Type.Object({ reason: Type.String() });

export const LegalHoldResponse = Type.Object({
  held: Type.Boolean(),
  heldAt: Type.Optional(IsoTimestamp),
  heldBy: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
});
