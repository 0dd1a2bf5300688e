// Starts `dlog lsp` for the programs of a window and ends it with the window.
const path = require("path");
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const settings = workspace.getConfiguration("dlog");
  const root = workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const flags = [
    ...settings.get("includeDirs").flatMap((folder) => ["-I", path.resolve(root, folder)]),
    ...settings.get("macros").flatMap((macro) => ["-M", macro]),
  ];
  // Not in the window's folder: a program called dlog that lies there would be found before the user's on some systems.
  const server = { command: settings.get("command"), args: ["lsp", ...flags], options: { cwd: __dirname } };
  client = new LanguageClient("dlog", "dlog", server, { documentSelector: [{ language: "souffle" }] });
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
