import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

export const ImportResponse = component(
  'ImportResponse',
  Type.Object({ updateId: Type.String(), updateID: Type.String() }),
);
