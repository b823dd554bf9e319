import { Plus, X } from 'lucide-react';
import { PermissionChoice } from '../../access/permission-set.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { Button } from '../../platform/ui/button.tsx';
import { TextField } from '../../platform/ui/field.tsx';
import { scopeTexts } from '../texts.tsx';
import { newScope, type Scope, withoutScope } from './scopes.ts';

export function ScopesField({
  onChange,
  scopes,
}: {
  readonly scopes: readonly Scope[];
  readonly onChange: (scopes: readonly Scope[]) => void;
}) {
  const change = (at: number, scope: Scope) => onChange(scopes.map((each, index) => (index === at ? scope : each)));
  return (
    <>
      {scopes.map((scope, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the index is what identifies a scope.
        <fieldset key={at} className={styles['group']}>
          <legend>{scopeTexts.scope(scopes.length === 1 ? null : at + 1)}</legend>
          <div className={styles['row']}>
            <div className={styles['grow']}>
              <TextField
                label={scopeTexts.stacks}
                value={scope.stacks}
                maxLength={300}
                required
                hint={scopeTexts.stacksHint(<code>project/stack</code>, <code>*</code>)}
                onChange={({ target }) => change(at, { ...scope, stacks: target.value })}
              />
            </div>
            {scopes.length === 1 ? null : (
              <Button
                kind="quiet"
                size="icon"
                aria-label={scopeTexts.remove(at + 1)}
                onClick={() => onChange(withoutScope(scopes, at))}
              >
                <X size={16} />
              </Button>
            )}
          </div>
          <PermissionChoice
            label={scopeTexts.permissions}
            names={scope.permissions}
            onChange={(permissions) => change(at, { ...scope, permissions })}
          />
        </fieldset>
      ))}
      <Button size="small" className={styles['start']} onClick={() => onChange([...scopes, newScope])}>
        <Plus size={14} aria-hidden="true" />
        {scopeTexts.add}
      </Button>
    </>
  );
}
