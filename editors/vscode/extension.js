// Starts `dlog lsp` for the programs of a window and ends it with the window.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const settings = workspace.getConfiguration("dlog");
  const flags = [
    ...settings.get("includeDirs").flatMap((folder) => ["-I", folder]),
    ...settings.get("macros").flatMap((macro) => ["-M", macro]),
  ];
  const server = { command: settings.get("command"), args: ["lsp", ...flags] };
  client = new LanguageClient("dlog", "dlog", server, { documentSelector: [{ language: "souffle" }] });
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
