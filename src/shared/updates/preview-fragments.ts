import { sql } from '../platform/db/sql.ts';

/** `pulumi preview`, or another command with `--preview-only`. */
export const isPreview = sql.fragment`(u.dry_run or u.kind = 'preview')`;
export const isNoPreview = sql.fragment`not u.dry_run and u.kind <> 'preview'`;
