import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';
import { IsoTimestamp } from '../platform/protocol/core.ts';

export const SetLegalHoldRequest = component('SetLegalHoldRequest', Type.Object({ reason: Type.String() }));

export const LegalHoldResponse = component(
  'LegalHoldResponse',
  Type.Object({
    held: Type.Boolean(),
    heldAt: Type.Optional(IsoTimestamp),
    heldBy: Type.Optional(Type.String()),
    reason: Type.Optional(Type.String()),
  }),
);
