import { SelectField, TextArea, TextField } from '../../platform/ui/field.tsx';
import { FreezeFields } from './freeze-fields.tsx';
import styles from './rule-dialog.module.css';
import type { SettingsProps } from './rule-draft.ts';

/** The fields of one kind of rules. */
export function RuleSettings({ draft, onChange }: SettingsProps) {
  const number = (
    label: string,
    name: 'most' | 'seconds' | 'changes' | 'percent' | 'newest' | 'days' | 'daily' | 'monthly',
    max: number,
    hint?: string,
  ) => (
    <TextField
      label={label}
      type="number"
      min={0}
      max={max}
      step="any"
      value={draft[name]}
      hint={hint}
      onChange={({ target }) => onChange({ [name]: target.value })}
    />
  );
  const choice = (
    label: string,
    name: 'mode' | 'per' | 'by' | 'ownPreview' | 'withoutJournal' | 'approvers',
    options: readonly (readonly [string, string])[],
  ) => (
    <SelectField
      label={label}
      value={draft[name]}
      options={options}
      onChange={({ target }) => onChange({ [name]: target.value })}
    />
  );
  const journal = choice('Updates that send no journal', 'withoutJournal', [
    ['allow', 'are allowed: the rule cannot be enforced for them'],
    ['refuse', 'are refused'],
  ]);
  const approvers = choice('Changes beyond the limit are approved by', 'approvers', [
    ['people', 'people'],
    ['tokens', 'people, and tokens of teams, organizations and services'],
  ]);
  switch (draft.kind) {
    case 'freeze':
      return <FreezeFields draft={draft} onChange={onChange} />;
    case 'concurrency':
      return (
        <div className={styles['pair']}>
          {number('Maximum updates at once', 'most', 100_000)}
          {choice('Counted', 'per', [
            ['all', 'together'],
            ['user', 'for each user'],
            ['project', 'for each project'],
          ])}
        </div>
      );
    case 'lock-wait':
      return number('Seconds', 'seconds', 86_400, '0: updates do not wait.');
    case 'wait-alert':
      return number('Seconds', 'seconds', 86_400, 'Once for each update.');
    case 'supersede':
      return choice('A newer commit of', 'by', [
        ['branch', 'the same branch'],
        ['pull-request', 'the same pull request'],
        ['nothing', 'nothing: runs are never superseded'],
      ]);
    case 'consumers':
      return choice('Updates that remove outputs', 'mode', [
        ['warn', 'get a warning'],
        ['refuse', 'are refused'],
      ]);
    case 'change-limit':
      return (
        <>
          <div className={styles['pair']}>
            {number('Maximum deletes and replacements', 'changes', 100_000)}
            {number('Percentage of the stack', 'percent', 100)}
          </div>
          {approvers}
          {journal}
        </>
      );
    case 'protected-types':
      return (
        <>
          <TextArea
            label="Types of resources"
            hint="One per line; * matches any characters."
            placeholder="aws:rds/*"
            spellCheck={false}
            value={draft.types}
            onChange={({ target }) => onChange({ types: target.value })}
          />
          {approvers}
          {journal}
        </>
      );
    case 'keep-versions':
      return (
        <>
          <div className={styles['pair']}>
            {number('The newest versions', 'newest', 1_000_000)}
            {number('All of the last days', 'days', 36_500)}
          </div>
          <div className={styles['pair']}>
            {number('The last of each day, for days', 'daily', 36_500)}
            {number('The last of each month, for months', 'monthly', 1_200)}
          </div>
        </>
      );
    case 'keep-events':
    case 'keep-previews':
      return number('Days', 'days', 36_500);
    case 'require-preview':
      return (
        <>
          {choice('Without a preview of the commit', 'mode', [
            ['warn', 'users are warned'],
            ['refuse', 'updates are refused'],
            ['off', 'nothing happens'],
          ])}
          {choice('The preview that up and destroy start with', 'ownPreview', [
            ['counts', 'counts'],
            ['ignored', 'does not count'],
          ])}
          {journal}
        </>
      );
  }
}
