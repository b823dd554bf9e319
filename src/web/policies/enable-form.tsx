import { useId, useState } from 'react';
import type { PolicyPack } from '../platform/app/procedure-types.ts';
import { Button } from '../platform/ui/button.tsx';
import { SelectField, TextField } from '../platform/ui/field.tsx';
import { HaltNote } from '../platform/ui/halt-note.tsx';
import styles from './policies.module.css';
import { policyGroupDetailsTexts } from './texts.ts';

/** `packs` are the first ones by name, with their newest versions. */
export function EnableForm({
  isPending,
  onEnable,
  onMore,
  onTag: setTag,
  packs,
  tag,
}: {
  readonly packs: readonly PolicyPack[];
  /** The chosen version; empty: the newest. */
  readonly tag: string;
  readonly onTag: (tag: string) => void;
  readonly isPending: boolean;
  readonly onEnable: (enabled: { readonly pack: string; readonly tag: string }) => void;
  readonly onMore: (() => void) | null;
}) {
  const listId = useId();
  const [name, setName] = useState(packs[0]?.name ?? '');
  const pack = packs.find((each) => each.name === name) ?? packs[0];
  if (pack === undefined) return null;
  const newest = pack.versions[0]?.tag ?? '';
  const hasOlder = pack.versionCount > pack.versions.length;
  const chosen = hasOlder ? tag.trim() : pack.versions.find((each) => each.tag === tag)?.tag;
  return (
    <>
      <form
        className={styles['form']}
        data-draft={tag === '' ? undefined : ''}
        onSubmit={(event) => {
          event.preventDefault();
          onEnable({ pack: pack.name, tag: chosen || newest });
        }}
      >
        <SelectField
          label={policyGroupDetailsTexts.pack}
          value={pack.name}
          options={packs.map((each) => [each.name, each.displayName])}
          onChange={({ target }) => {
            setName(target.value);
            setTag('');
          }}
        />
        {hasOlder ? (
          <>
            <TextField
              label={policyGroupDetailsTexts.version}
              placeholder={newest}
              list={listId}
              value={tag}
              maxLength={100}
              onChange={({ target }) => setTag(target.value)}
            />
            <datalist id={listId}>
              {pack.versions.map((each) => (
                <option key={each.tag} value={each.tag} />
              ))}
            </datalist>
          </>
        ) : (
          <SelectField
            label={policyGroupDetailsTexts.version}
            value={chosen ?? newest}
            options={pack.versions.map((each) => [each.tag, each.tag])}
            onChange={({ target }) => setTag(target.value)}
          />
        )}
        <Button type="submit" disabled={isPending}>
          {policyGroupDetailsTexts.enable}
        </Button>
        {onMore === null ? null : <Button onClick={onMore}>{policyGroupDetailsTexts.morePacks}</Button>}
      </form>
      {tag === '' ? null : <HaltNote className={styles['error']} />}
    </>
  );
}
