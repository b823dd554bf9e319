import { type Static, type TSchema, Type } from 'typebox';

/** A member that Go's encoder may omit or send as null; both mean absent. */
export function Maybe<S extends import('typebox').TSchema>(schema: S) {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

/** The format of all times in the CLI's dialect. */
export const UnixSeconds = Type.Integer({ description: 'Seconds since the epoch' });
export const IsoTimestamp = Type.String({ format: 'date-time' });
export const StringMap = Type.Record(Type.String(), Type.String());
export const AnyObject = Type.Object({}, { additionalProperties: true });

export const ProjectParams = Type.Object({ organization: Type.String(), project: Type.String() });
export const StackParams = Type.Object({ organization: Type.String(), project: Type.String(), stack: Type.String() });
export type StackParams = Type.Static<typeof StackParams>;
export const UpdateParams = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  updateId: Type.String(),
});
export type UpdateParams = Type.Static<typeof UpdateParams>;
export const VersionParams = Type.Object({
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  stackVersion: Type.String(),
});

export const OrganizationParams = Type.Object({ organization: Type.String() });
export const TeamParams = Type.Object({ organization: Type.String(), team: Type.String() });

export type Either<Cli extends TSchema, Contract extends TSchema> = Static<Cli> | Static<Contract>;
