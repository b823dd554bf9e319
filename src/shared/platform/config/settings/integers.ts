import { Type } from 'typebox';

export const positive = (description: string, defaultValue: number, maximum = 2 ** 40) =>
  Type.Integer({ description, default: defaultValue, minimum: 1, maximum });
