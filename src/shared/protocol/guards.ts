import { Type } from 'typebox';
import { Maybe } from './core.ts';

/** Why an update is to end gently, for those who run it. */
export const DrainUpdateRequest = Type.Object({ reason: Maybe(Type.String()) });
