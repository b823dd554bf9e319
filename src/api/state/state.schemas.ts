import { Type } from 'typebox';

export const ImportResponse = Type.Object({ updateId: Type.String(), updateID: Type.String() });
